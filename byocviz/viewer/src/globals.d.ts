declare module "worker-text" {
  const text: string;
  export default text;
}
declare module "graphviz-wasm" {
  /** Graphviz' WebAssembly: gzip, then base64. */
  const packed: string;
  export default packed;
}
declare module "*.css";
