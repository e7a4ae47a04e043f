"""Authentication: API keys, JWTs, sessions and their cookies, OpenID Connect."""
