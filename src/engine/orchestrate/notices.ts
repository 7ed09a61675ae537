import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { checkOf, type Trust } from "#engine/project/project.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { validate } from "#engine/yaml/validate.ts";

const NOTIFY_FILE = "notify.yaml";

const Notice = z
  .strictObject({
    on: z
      .array(z.enum(["failure", "change", "question"]))
      .min(1)
      .describe("The events for which kcore sends the notice."),
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("A program, run in the project's folder; its stdin has the notice as JSON."),
    webhook: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("An address that gets the notice as JSON by POST."),
    mail: z
      .string()
      .regex(/^[^\s,<>]+@[^\s,<>]+$/, "must be one address")
      .optional()
      .describe("The address that this machine's sendmail writes to."),
  })
  .refine(
    ({ command, webhook, mail }) => [command, webhook, mail].filter((way) => way !== undefined).length === 1,
    "needs one of command, webhook and mail",
  );
export type Notice = z.output<typeof Notice>;

/** The notices of a project's `notify.yaml`; none without that file. @throws KcoreError with every problem of the file */
export function readNotices(project: string, trust: Trust | undefined): readonly Notice[] {
  const path = join(project, NOTIFY_FILE);
  if (!existsSync(path)) return [];
  const bytes = readBytes(path, { name: NOTIFY_FILE, ...(trust && { check: checkOf(trust) }) });
  return validate(parseSource(NOTIFY_FILE, bytes), z.array(Notice));
}
