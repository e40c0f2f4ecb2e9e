"""A config.json in the shape that MindIE has, with made-up values."""

from __future__ import annotations

CONFIG = """\
{
    "Version" : "1.0.0",

    "ServerConfig" :
    {
        "ipAddress" : "127.0.0.1",
        "port" : 1999,
        "httpsEnabled" : false,
        "tlsCaFile" : ["one.pem"]
    },

    "BackendConfig" : {
        "npuDeviceIds" : [[0,1]],
        "ModelDeployConfig" :
        {
            "maxSeqLen" : 4096,
            "ModelConfig" : [
                {
                    "modelName" : "made-up",
                    "worldSize" : 2
                }
            ]
        },

        "ScheduleConfig" :
        {
            "maxBatchSize" : 64
        }
    }
}
"""
