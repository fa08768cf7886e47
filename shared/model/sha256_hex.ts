/** SHA-256 of a text's UTF-8, in lower-case hexadecimal. Each program passes its own: one that waits costs more than the hash. */
export type Sha256Hex = (text: string) => string;
