# More folders within one another than can be removed by recursion.
import os

os.chdir(os.environ["OUTPUTS"])
while True:
    os.mkdir("d")
    os.chdir("d")
