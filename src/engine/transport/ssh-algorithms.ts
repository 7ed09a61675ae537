import type { Algorithms } from "ssh2";
import { hostKeyAlgorithms, type HostKey } from "./host-key.ts";

/** The offered algorithms: ssh2's list without SHA-1, MD5, CBC and compression, and those of host keys. */
export function safeAlgorithms(trusted: readonly HostKey[]): Algorithms {
  const chosen = {
    serverHostKey: hostKeyAlgorithms(trusted),
    kex: { remove: [/sha1$/] },
    cipher: { remove: [/cbc/, /arcfour/] },
    hmac: { remove: [/sha1/, /md5/] },
    compress: ["none"],
  };
  // @types/ssh2 lists names one by one and knows no removal without additions.
  return chosen as unknown as Algorithms;
}
