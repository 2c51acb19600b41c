/** Base64 and gzip, as the page holds its data. */

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function gunzip(bytes: Uint8Array<ArrayBuffer>): Response {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
