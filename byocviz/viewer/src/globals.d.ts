declare module "graphviz-wasm" {
  /** Graphviz' WebAssembly: gzip, then base64. */
  const packed: string;
  export default packed;
}
declare module "*.css";
/** Not yet in TypeScript's own library. */
interface Uint8ArrayConstructor {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}
