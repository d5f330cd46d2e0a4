"""What this program does, in a sentence."""

from rowsmith import Client

client = Client()

for template in client.get_templates():
    print(template["name"])
