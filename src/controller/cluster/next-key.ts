import { dirname } from "node:path";
import { ensurePrivateFolder, replaceFile } from "#pki/files.ts";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";

/** Makes a key in a file, 0600 in a folder 0700, and proves that it is here: its SPKI, and its signature over the challenge. */
export async function makeNextKey(
  file: string,
  challenge: string,
): Promise<{ readonly spki: string; readonly challenge: string; readonly signature: string }> {
  const key = generateKey();
  await ensurePrivateFolder(dirname(file));
  await replaceFile(file, key.export({ type: "pkcs8", format: "pem" }) as string);
  return { spki: publicDer(key).toString("base64"), challenge, signature: proveKey(key, challenge) };
}
