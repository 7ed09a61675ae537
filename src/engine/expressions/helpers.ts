import { suggestHint } from "#errors/suggest.ts";
import { Secret } from "#engine/step/secret.ts";
import { Fault } from "./fault.ts";
import { Arguments, type Helper } from "./helper.ts";
import { listHelpers } from "./helpers-list.ts";
import { logicHelpers } from "./helpers-logic.ts";
import { textHelpers } from "./helpers-text.ts";
import { entriesOf, isMapValue } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";

/** Every helper by its name. A test checks that docs/templates.md describes each one. */
export const helpers: ReadonlyMap<string, Helper> = new Map(
  Object.entries({ ...logicHelpers, ...textHelpers, ...listHelpers }),
);

/** The helper of this name. @throws Fault EXPRESSION_SYNTAX with a suggestion. */
export function helperNamed(name: string): Helper {
  const found = helpers.get(name);
  if (found !== undefined) return found;
  throw new Fault(`no helper “${name}”`, {
    code: "EXPRESSION_SYNTAX",
    hint: suggestHint(name, helpers.keys(), "docs/templates.md lists the helpers"),
  });
}

/** The result of a helper; a text made from a secret is a Secret, a number or boolean made from one is plain. @throws Fault */
export function callHelper(name: string, values: readonly unknown[], named: ReadonlyMap<string, unknown>): unknown {
  try {
    return call(name, values, named);
  } catch (error) {
    // A node may answer with data nested too deeply for recursion (S-4).
    if (error instanceof RangeError) throw new Fault(`${name} gets a value that is nested too deeply or too large`);
    throw error;
  }
}

function call(name: string, values: readonly unknown[], named: ReadonlyMap<string, unknown>): unknown {
  const helper = helperNamed(name);
  const { min, max = Number.POSITIVE_INFINITY, usage } = helper;
  if (values.length < min || values.length > max)
    throw new Fault(`${name} does not take ${values.length} argument${values.length === 1 ? "" : "s"}`, {
      code: "EXPRESSION_SYNTAX",
      hint: `write ${name} ${usage}`,
    });
  for (const key of named.keys())
    if (!helper.named?.includes(key))
      throw new Fault(`${name} takes no “${key}=”`, { code: "EXPRESSION_SYNTAX", hint: `write ${name} ${usage}` });
  const undefinedAt = name === "default" ? -1 : values.indexOf(undefined);
  if (undefinedAt !== -1)
    throw new Fault(`argument ${undefinedAt + 1} of ${name} is undefined`, { argument: undefinedAt });
  if (helper.passes === true) return helper.run(new Arguments(name, values, named));
  const { value, isSecret } = reveal(values);
  const result = helper.run(new Arguments(name, value as unknown[], named));
  return isSecret ? conceal(result) : result;
}

/** The value with secrets as plain texts, and whether it had any. */
function reveal(value: unknown): { value: unknown; isSecret: boolean } {
  if (value instanceof Secret) return { value: value.reveal(), isSecret: true };
  if (Array.isArray(value)) {
    const items = value.map(reveal);
    const isSecret = items.some((item) => item.isSecret);
    return isSecret ? { value: items.map((item) => item.value), isSecret } : { value, isSecret };
  }
  if (!isMapValue(value)) return { value, isSecret: false };
  const items = entriesOf(value).map(([key, item]) => [key, reveal(item)] as const);
  if (!items.some(([, item]) => item.isSecret)) return { value, isSecret: false };
  return { value: new Map(items.map(([key, item]) => [key, item.value])), isSecret: true };
}

function conceal(value: unknown): unknown {
  if (typeof value === "string") return new Secret(value);
  if (Array.isArray(value)) return value.map(conceal);
  if (typeof value === "boolean" || typeof value === "number") return value;
  throw new Fault(`${describeValue(value)} cannot be made of a secret`);
}
