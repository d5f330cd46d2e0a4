"""What a web server loads: `gunicorn wsgi:app`."""

import os

from webapp import create_app
from webapp.config import Settings

app = create_app(Settings.from_env(os.environ))
