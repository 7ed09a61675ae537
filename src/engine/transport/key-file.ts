/** The properties of a private key file that are readable without its passphrase. */
export interface KeyFileFormat {
  readonly format: "openssh" | "pem" | "pkcs8" | "putty" | "unknown";
  readonly encrypted: boolean;
  /** Of the OpenSSH format: `aes256-ctr`, `chacha20-poly1305@openssh.com` … */
  readonly cipher?: string;
  /** Of the OpenSSH format: the public half, which it holds in the clear. */
  readonly publicBlob?: Buffer;
}

/** Recognises a private key file by its armour, and for OpenSSH's own format by its header (PROTOCOL.key). */
export function inspectKeyFile(text: string): KeyFileFormat {
  const armour = /^-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----/m.exec(text)?.[1]?.trim();
  if (armour === "OPENSSH") return inspectOpenSsh(text);
  if (armour === "") return { format: "pkcs8", encrypted: false };
  if (armour === "ENCRYPTED") return { format: "pkcs8", encrypted: true };
  if (armour !== undefined) return { format: "pem", encrypted: /^Proc-Type: *4,ENCRYPTED/m.test(text) };
  const putty = /^PuTTY-User-Key-File-\d+: .*\r?\nEncryption: *(\S+)/m.exec(text);
  if (putty) return { format: "putty", encrypted: putty[1] !== "none" };
  return { format: "unknown", encrypted: false };
}

const magic = "openssh-key-v1\0";

function inspectOpenSsh(text: string): KeyFileFormat {
  const base64 = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]*?)-----END/.exec(text)?.[1] ?? "";
  const bytes = Buffer.from(base64, "base64");
  if (bytes.toString("latin1", 0, magic.length) !== magic) return { format: "unknown", encrypted: false };
  let position = magic.length;
  const readString = () => {
    const length = position + 4 <= bytes.length ? bytes.readUInt32BE(position) : 0;
    const value = bytes.subarray(position + 4, position + 4 + length);
    position += 4 + length;
    return value;
  };
  const cipher = readString().toString("latin1");
  readString(); // the key derivation's name
  readString(); // and its options
  position += 4; // the number of keys, always 1
  const publicBlob = Buffer.from(readString());
  return { format: "openssh", encrypted: cipher !== "none", cipher, ...(publicBlob.length > 0 && { publicBlob }) };
}
