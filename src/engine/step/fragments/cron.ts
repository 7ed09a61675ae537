import { z } from "zod";
import { shellText } from "../shell-text.ts";

/** The name of a file in a folder such as /etc/cron.d, whose readers ignore names with dots (cron(8), sudoers(5), run-parts(8)). */
export const EtcName = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/,
    "must be a plain name of letters, digits, _ and -: others are passed over",
  );

/** A job's command line in a crontab, where each job is one line. */
export const Command = shellText(
  z
    .string()
    .regex(/^[^\0\n]*\S[^\0\n]*$/, "must be one line")
    .refine((text) => !text.includes(String.raw`\%`), "write % without a back slash: kcore escapes it for cron"),
);

interface Field {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** The names of the values, from `first` on. */
  readonly words?: readonly string[];
}

/** The five fields of a time in crontab(5). */
const fields: readonly Field[] = [
  { name: "minute", first: 0, last: 59 },
  { name: "hour", first: 0, last: 23 },
  { name: "day of the month", first: 1, last: 31 },
  {
    name: "month",
    first: 1,
    last: 12,
    words: "jan feb mar apr may jun jul aug sep oct nov dec".split(" "),
  },
  { name: "weekday", first: 0, last: 7, words: "sun mon tue wed thu fri sat".split(" ") },
];

const nicknames = "@reboot @yearly @annually @monthly @weekly @daily @midnight @hourly".split(" ");

/** The time of a cron job: five fields or a nickname, written with single blanks. */
export const Schedule = z
  .string()
  .transform((text) => text.trim().replaceAll(/[ \t]+/g, " "))
  .superRefine((text, context) => {
    const problem = scheduleProblem(text);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

function scheduleProblem(text: string): string | undefined {
  if (text.startsWith("@")) return nicknames.includes(text) ? undefined : `must be one of ${nicknames.join(", ")}`;
  const given = text.split(" ");
  if (given.length !== fields.length)
    return `must have five fields (minute hour day month weekday) or be such as @daily`;
  const wrong = fields.findIndex((field, index) => !isFieldValue(field, given[index] ?? ""));
  const field = fields[wrong];
  return (
    field && `the ${field.name} “${given[wrong]}” is none: ${field.first}-${field.last}, *, a-b, */n, or a list of them`
  );
}

/** Whether the text is valid for the field. A name must be alone: not every cron accepts ranges or lists of names. */
function isFieldValue({ first, last, words = [] }: Field, text: string): boolean {
  if (words.includes(text.toLowerCase())) return true;
  return text.split(",").every((part) => {
    const [, all, from = "", to = from, step] = /^(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part) ?? [];
    if (step !== undefined && (Number(step) < 1 || (all === undefined && to === from && !part.includes("-"))))
      return false;
    if (all !== undefined) return true;
    return from !== "" && Number(from) >= first && Number(from) <= Number(to) && Number(to) <= last;
  });
}
