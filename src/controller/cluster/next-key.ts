import type { KeyObject } from "node:crypto";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";

const lifeMs = 600_000;

/** Holds the key of a rotation until its certificate comes, in memory alone: an abandoned rotation leaves no key on a disk. */
export function holdNextKey(clock: () => number) {
  let waiting: { readonly key: KeyObject; readonly until: number } | undefined;
  return {
    /** Makes a new key, which replaces a waiting one, and proves its possession by a signature over the challenge. */
    make(challenge: string) {
      const key = generateKey();
      waiting = { key, until: clock() + lifeMs };
      return { spki: publicDer(key).toString("base64"), challenge, signature: proveKey(key, challenge) };
    },
    /** The key in PEM; undefined when none was made in the last ten minutes. */
    pem(): string | undefined {
      if (waiting && waiting.until < clock()) waiting = undefined;
      return waiting?.key.export({ type: "pkcs8", format: "pem" }) as string | undefined;
    },
    /** Drops the key, once it is in use or its rotation was abandoned. */
    forget(): void {
      waiting = undefined;
    },
  };
}
