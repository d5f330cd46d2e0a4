import os
import resource

try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("GOT IN: limit")
except (OSError, ValueError) as error:
    print("closed", error, flush=True)
os.chdir(os.environ["OUTPUTS"])
os.abort()
