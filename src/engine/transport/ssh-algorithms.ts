import type { Algorithms } from "ssh2";

/** The offered algorithms: ssh2's list without SHA-1, MD5, CBC and compression, and the given host key algorithms. */
export function safeAlgorithms(serverHostKey: readonly string[]): Algorithms {
  const chosen = {
    serverHostKey: [...serverHostKey],
    kex: { remove: [/sha1$/] },
    cipher: { remove: [/cbc/, /arcfour/] },
    hmac: { remove: [/sha1/, /md5/] },
    compress: ["none"],
  };
  // @types/ssh2 lists names one by one and knows no removal without additions.
  return chosen as unknown as Algorithms;
}
