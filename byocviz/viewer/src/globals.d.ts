declare module "*.css";
/** Not yet in TypeScript's own library. */
interface Uint8ArrayConstructor {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}
