/** The kinds of sources that mint the value of a secret. A secret without a source has a stored value. */
export const SOURCE_KINDS = ['client_credentials', 'jwt_bearer', 'google_service_account', 'github_app'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];
