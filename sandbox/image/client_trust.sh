# shellcheck shell=sh
# The variables that name trusted roots for programs. All point to one bundle: the image's roots and the session's CA.

trust_bundle=/etc/svc/trust/bundle.pem
java_store=/etc/svc/trust/java-cacerts

ca_variables='
SSL_CERT_FILE
NODE_EXTRA_CA_CERTS
REQUESTS_CA_BUNDLE
CURL_CA_BUNDLE
PIP_CERT
GIT_SSL_CAINFO
AWS_CA_BUNDLE
DENO_CERT
CARGO_HTTP_CAINFO
CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE
GRPC_DEFAULT_SSL_ROOTS_FILE_PATH
CODEX_CA_CERTIFICATE
HTTPLIB2_CA_CERTS
PERL_LWP_SSL_CA_FILE
BUNDLE_SSL_CA_CERT
HEX_CACERTS_PATH
NIX_SSL_CERT_FILE
npm_config_cafile
YARN_HTTPS_CA_FILE_PATH
'

# export_client_trust: sets them all. A JVM reads options, so its store is appended to the options of image or launcher.
export_client_trust() {
  for variable in $ca_variables; do
    export "$variable=$trust_bundle"
  done
  unset SSL_CERT_DIR variable
  [ -f "$java_store" ] || return 0
  JAVA_TOOL_OPTIONS="${JAVA_TOOL_OPTIONS:+$JAVA_TOOL_OPTIONS }-Djavax.net.ssl.trustStore=$java_store -Djavax.net.ssl.trustStorePassword=changeit"
  export JAVA_TOOL_OPTIONS
}
