import type { PublicKey } from "#engine/transport/admit-key.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { KcoreError } from "#errors/problem.ts";

/** The public key in a file as ssh-keygen(1) writes it. @throws KcoreError FILE_UNREADABLE, KEY_UNREADABLE */
export function readPublicKeyFile(file: string): PublicKey {
  const text = readBytes(file, { maxBytes: 64 * 1024 }).toString("utf8");
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const [line = ""] = lines;
  const found = lines.length === 1 ? parseHostKey(line) : undefined;
  if (found) {
    const comment = line
      .trim()
      .split(/\s+/)
      .slice(2)
      .join(" ")
      .replaceAll(/[^\x20-\x7e]/g, "");
    return { type: found.type, key: found.key, ...(comment !== "" && { comment }) };
  }
  const isPrivate = text.includes("PRIVATE KEY");
  throw new KcoreError({
    code: "KEY_UNREADABLE",
    message: isPrivate
      ? `${file} holds a private key, which stays where it is`
      : `${file} does not hold one public key: TYPE BASE64`,
    hint: isPrivate ? `name its public half: ${file}.pub` : "ssh-keygen -y -f PRIVATE_KEY prints one",
  });
}
