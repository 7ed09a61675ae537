import type { Algorithms } from "ssh2";
import { hostKeyAlgorithms, type HostKey } from "./host-key.ts";

/** The offered algorithms: ssh2's without SHA-1, MD5, CBC, RC4 and compression, and `hostKeyAlgorithms` for the host key. */
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
