/** Files that the rules of wrangler.toml give the workerd entry as text. */
declare module '*.css' {
  const text: string;
  export { text as default };
}
declare module '*.svg' {
  const text: string;
  export { text as default };
}
declare module '*.js' {
  const text: string;
  export { text as default };
}
declare module '*.mjs' {
  const text: string;
  export { text as default };
}
declare module '*.yaml' {
  const text: string;
  export { text as default };
}
