import { z } from "zod";
import { AbsolutePath, Duration, UserName } from "#engine/step/fields.ts";
import { refuseSecret } from "#engine/step/fragments/process.ts";
import { shellText } from "#engine/step/shell-text.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { mapValues, SourceMap } from "#engine/yaml/node.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { validateValue } from "#engine/yaml/validate.ts";

const Condition = shellText(
  z
    .string()
    .min(1)
    .regex(/^[^\0]*$/, "must not hold a NUL"),
);

/** A variable's name that the node's shell accepts and kcore's texts there do not use. */
const Variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name")
  .regex(/^(?!LC_ALL$)/, "must not be LC_ALL, in which modules read what programs print: give LANG")
  .regex(/^(?!IFS$|[Kk][A-Za-z]?_)/, "must not be IFS or begin as K_, k_ or kt_, which kcore uses itself")
  .regex(/^(?!(?:E?UID|PPID|SHELLOPTS|BASHOPTS|BASH_VERSINFO)$)/, "must be none that bash sets itself, for good");

const Value = z
  .union([z.int(), z.string().regex(/^[^\0]*$/, "must not hold a NUL")], { error: refuseSecret })
  .transform(String);

const Sentence = z
  .string()
  .min(1)
  .max(1000)
  .regex(/^\P{Cc}+$/u, "must be one line");

/** The step keys that hold values. */
export const ValueKeys = z.strictObject({
  unless: Condition.optional().describe("A shell text on the node; the step is in order if it succeeds."),
  onlyIf: Condition.optional().describe("A shell text on the node; the step is left out if it fails."),
  creates: AbsolutePath.optional().describe("An absolute path; the step is in order if it exists."),
  retry: z
    .strictObject({
      attempts: z.int().min(1).max(10_000).describe("The most attempts at the step."),
      interval: Duration.default(1).describe("The pause between two attempts: 10s, 1m."),
    })
    .optional()
    .describe("Tries the step again until it is in order.")
    .meta({ examples: [{ attempts: 5, interval: "10s" }] }),
  timeout: Duration.refine((seconds) => seconds > 0, "must be more than nothing")
    .optional()
    .describe("The time limit of probe and apply together: 90s, 10m."),
  runAs: UserName.optional().describe("The user on the node under whom the step runs."),
  environment: z
    .record(Variable, Value)
    .optional()
    .describe("Environment variables of all that the step runs; never secret ones.")
    .meta({ examples: [{ https_proxy: "http://proxy:3128" }] }),
  sensitive: z.boolean().optional().describe("Values, output and changes of the step are neither shown nor recorded."),
  risk: z
    .literal("connectivity")
    .optional()
    .describe("The changes of the step are on trial until a new connection confirms them."),
  confirm: Duration.refine((seconds) => seconds >= 5 && seconds <= 3600, "must be 5s to 1h")
    .optional()
    .describe("How long a new connection has to confirm the changes, from 5s to 1h; 30s unless given."),
  severity: z
    .enum(["error", "warning"])
    .optional()
    .describe("Makes the step a check: further checks follow its failure. A warning stops nothing."),
  reason: Sentence.optional().describe("Of a check: the trouble that its failure brings."),
  remedy: Sentence.optional().describe("Of a check: the command, or the work, that mends its failure."),
  milestone: z
    .string()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}+$/u, "must be one line")
    .optional()
    .describe("Written to the node's status and onboarding log when the step is in order."),
});

export type CommonKeys = Readonly<{
  [Key in keyof z.output<typeof ValueKeys>]?: NonNullable<z.output<typeof ValueKeys>[Key]>;
}>;

/** Evaluates and checks the step keys that hold values. @throws KcoreError, UnknownValue */
export function readCommonKeys(step: SourceMap, scope: Scope): CommonKeys {
  const entries = new Map([...step.entries].filter(([key]) => key in ValueKeys.shape));
  if (entries.size === 0) return {};
  const map = new SourceMap(step.file, step.start, step.end, entries, step.flow);
  const values = mapValues(map, (node) => evaluate(node, scope));
  return validateValue(values, map, ValueKeys) as CommonKeys;
}
