"""Serves models over HTTP: an API with an OpenAPI document, and a translation page."""
