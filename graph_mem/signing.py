"""How this installation signs and checks tokens, by its settings."""

from graph_mem.api.tokens import TokenSettings
from graph_mem.config import Settings


def token_settings(settings: Settings) -> TokenSettings:
    """The keys of an identity provider where one is named, else the secret."""
    secret = settings.jwt_secret
    return TokenSettings(
        audience=settings.jwt_audience,
        issuer=settings.jwt_issuer,
        secret=secret.get_secret_value() if secret and settings.jwt_jwks_url is None else None,
        jwks_url=settings.jwt_jwks_url,
    )
