import type { KeyObject } from "node:crypto";
import { generateKey, proveKey, publicDer } from "#pki/keys.ts";

const lifeMs = 600_000;

/** A key that waits for its certificate, in memory alone, so that an abandoned rotation leaves no key on a disk. */
export function holdNextKey(clock: () => number) {
  let waiting: { readonly key: KeyObject; readonly until: number } | undefined;
  return {
    /** Makes a new key, in the place of a waiting one, and proves its possession by a signature over the challenge. */
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
    /** Drops the key, which is in use, or whose rotation was abandoned. */
    forget(): void {
      waiting = undefined;
    },
  };
}
