"""The place of the web parts: webhook ingest, reviewer console, codec server and health."""
