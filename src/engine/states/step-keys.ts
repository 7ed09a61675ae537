import { z } from "zod";
import { AbsolutePath, Duration, UserName } from "#engine/step/fields.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { mapValues, SourceMap } from "#engine/yaml/node.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { validateValue } from "#engine/yaml/validate.ts";

const ShellText = z
  .string()
  .min(1)
  .regex(/^[^\0]*$/, "must not hold a NUL");

const Keys = z.strictObject({
  unless: ShellText.optional(),
  onlyIf: ShellText.optional(),
  creates: AbsolutePath.optional(),
  retry: z.strictObject({ attempts: z.int().min(1).max(10_000), interval: Duration.default(1) }).optional(),
  timeout: Duration.refine((seconds) => seconds > 0, "must be more than nothing").optional(),
  runAs: UserName.optional(),
  sensitive: z.boolean().optional(),
  risk: z.literal("connectivity").optional(),
  confirm: Duration.refine((seconds) => seconds >= 5 && seconds <= 3600, "must be 5s to 1h").optional(),
  milestone: z
    .string()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}+$/u, "must be one line")
    .optional(),
});

export type CommonKeys = Readonly<{ [Key in keyof z.output<typeof Keys>]?: NonNullable<z.output<typeof Keys>[Key]> }>;

/** The step keys that hold values, evaluated and checked. @throws KcoreError, UnknownValue */
export function readCommonKeys(step: SourceMap, scope: Scope): CommonKeys {
  const entries = new Map([...step.entries].filter(([key]) => key in Keys.shape));
  if (entries.size === 0) return {};
  const map = new SourceMap(step.file, step.start, step.end, entries, step.flow);
  const values = mapValues(map, (node) => evaluate(node, scope));
  return validateValue(values, map, Keys) as CommonKeys;
}
