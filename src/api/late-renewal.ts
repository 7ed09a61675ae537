/**
 * How a node whose certificate has expired asks for the next one (F-25): a connection that says so in its ALPN, so that all
 * others keep being refused by TLS itself.
 */
export const lateRenewalProtocol = "kcore-late-renewal/1";
const graceMs = 30 * 86_400_000;

/** When the key of an expired certificate may renew it no more; milliseconds since the epoch. */
export function graceEnd(notAfter: Date): number {
  return notAfter.getTime() + graceMs;
}

/** Whether a certificate expired, but so lately that its key may still renew it. */
export function isInGrace(notAfter: Date, now: number): boolean {
  return now >= notAfter.getTime() && now <= graceEnd(notAfter);
}
