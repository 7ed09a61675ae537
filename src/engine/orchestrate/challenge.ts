import { createHash } from "node:crypto";

/**
 * What nodes sign in a run to prove that they hold a key (S-14): nobody could know it before the run began. Made of the run's nonce, which it
 * does not tell: that one frames what nodes say.
 */
export function challengeOf(nonce: string): string {
  return createHash("sha256").update(`kcore challenge ${nonce}`).digest("base64url");
}
