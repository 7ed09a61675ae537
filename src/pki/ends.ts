const dayMs = 86_400_000;
/** A certificate with so many days left counts as a failure. */
const failDays = 2;
/** Days left at which an operator is warned of a certificate, the last warning first. */
export const endDays = [failDays, 7, 14, 30] as const;

/** A certificate, and the command that renews it. */
export interface Certified {
  /** Such as “the operator's certificate”. */
  readonly what: string;
  readonly notAfter: Date;
  readonly way: string;
}

/** The warning of a certificate that ends soon. */
export interface Ending {
  /** The threshold that was passed last. */
  readonly days: (typeof endDays)[number];
  readonly isFailure: boolean;
  readonly message: string;
}

/** The warning of a certificate with 30 days or less left; undefined: it has more. */
export function endingOf({ what, notAfter, way }: Certified, now: number): Ending | undefined {
  const left = (notAfter.getTime() - now) / dayMs;
  const days = endDays.find((limit) => left <= limit);
  if (days === undefined) return undefined;
  const whole = Math.floor(left);
  const when = left <= 0 ? "ended" : whole === 1 ? "ends in 1 day, " : `ends in ${whole} days, `;
  const at = `${left <= 0 ? " " : ""}on ${notAfter.toISOString().slice(0, 10)}`;
  return { days, isFailure: days === failDays, message: `${what} ${when}${at}: ${way}` };
}
