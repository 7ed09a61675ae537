const dayMs = 86_400_000;
/** Days that are left when an operator is told, and told again. */
export const warnDays = [30, 14, 7] as const;
/** Days that are left when a certificate counts as a failure. */
export const failDays = 2;

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
  readonly days: (typeof warnDays)[number] | typeof failDays;
  readonly isFailure: boolean;
  readonly message: string;
}

/** The warning of a certificate with 30 days or less left; undefined: it has more. */
export function endingOf({ what, notAfter, way }: Certified, now: number): Ending | undefined {
  const left = (notAfter.getTime() - now) / dayMs;
  const days = ([failDays, 7, 14, 30] as const).find((limit) => left <= limit);
  if (days === undefined) return undefined;
  const whole = Math.floor(left);
  const when = left <= 0 ? "ended" : whole === 1 ? "ends in 1 day, " : `ends in ${whole} days, `;
  const at = `${left <= 0 ? " " : ""}on ${notAfter.toISOString().slice(0, 10)}`;
  return { days, isFailure: days === failDays, message: `${what} ${when}${at}: ${way}` };
}
