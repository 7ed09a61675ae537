/**
 * The ALPN protocol of a node that renews an expired certificate (F-25); every other connection with an expired certificate is
 * still refused by TLS itself.
 */
export const lateRenewalProtocol = "kcore-late-renewal/1";
const graceMs = 30 * 86_400_000;

/** The last moment at which the key of an expired certificate may renew it, in milliseconds since 1970. */
export function graceEnd(notAfter: Date): number {
  return notAfter.getTime() + graceMs;
}

/** Whether a certificate expired, but so lately that its key may still renew it. */
export function isInGrace(notAfter: Date, now: number): boolean {
  return now >= notAfter.getTime() && now <= graceEnd(notAfter);
}
