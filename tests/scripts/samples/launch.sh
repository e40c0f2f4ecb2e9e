#!/bin/bash
# export HCCL_BUFFSIZE=100
LEVEL=3
export ASCEND_GLOBAL_LOG_LEVEL=$LEVEL JOB_ID=10087
export RANK_SIZE=8
HCCL_CONNECT_TIMEOUT=600
export HCCL_CONNECT_TIMEOUT
export HCCL_ALGO="level0:NA;level1:H-D_R" # a comment
export PROFILING_OPTIONS='{"output":"/tmp/p","task_trace":"on"}'
cat <<EOF > other.sh
export HCCL_EXEC_TIMEOUT=1
EOF
if [ "$1" = debug ]; then
    export DUMP_GE_GRAPH=2
fi
for ((i = 0; i < RANK_SIZE; i++)); do
    RANK_ID=$i ASCEND_DEVICE_ID=$i nohup python3 train.py > log_$i 2>&1 &
done
