import type { KeyObject } from "node:crypto";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";

/** A key that waits for its certificate, in memory alone, so that an abandoned rotation leaves no key on a disk. */
export interface NextKey {
  /**
   * Makes a new key, in the place of a waiting one, and proves its possession: its SPKI, and its signature over the
   * challenge.
   */
  readonly make: (challenge: string) => {
    readonly spki: string;
    readonly challenge: string;
    readonly signature: string;
  };
  /** The key in PEM; undefined when none was made in the last ten minutes. */
  readonly pem: () => string | undefined;
  /** Drops the key, which is in use, or whose rotation was abandoned. */
  readonly forget: () => void;
}

const lifeMs = 600_000;

export function holdNextKey(clock: () => number): NextKey {
  let waiting: { readonly key: KeyObject; readonly until: number } | undefined;
  return {
    make(challenge) {
      const key = generateKey();
      waiting = { key, until: clock() + lifeMs };
      return { spki: publicDer(key).toString("base64"), challenge, signature: proveKey(key, challenge) };
    },
    pem() {
      if (waiting && waiting.until < clock()) waiting = undefined;
      return waiting?.key.export({ type: "pkcs8", format: "pem" }) as string | undefined;
    },
    forget() {
      waiting = undefined;
    },
  };
}
