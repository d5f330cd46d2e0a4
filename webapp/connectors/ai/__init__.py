"""Language models behind the OpenAI-compatible chat API."""
