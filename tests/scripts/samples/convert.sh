#!/bin/bash
SOC=Ascend910B2
${ASCEND_HOME}/bin/atc --model=./frozen.pb --framework=3 \
    --output ./om/model --soc_version=$SOC \
    --input_shape="input:1,224,224,3" --precision_mode_v2=fp16 \
    --op_select_implmode=high_precision_for_all --deterministic=1 --log=error
