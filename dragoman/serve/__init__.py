"""Models over HTTP: a service with an OpenAPI document, and a page to translate on."""
