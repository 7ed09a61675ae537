import { expect } from "chai";
import { shellSources } from "#engine/expressions/shell-values.ts";
import { registry } from "#engine/modules/registry.ts";
import type { Blob } from "#engine/step/blob.ts";
import type { ModuleDefinition, Step } from "#engine/step/define.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { contextOf } from "#support/steps.ts";
import { samplesOf } from "../../../../scripts/module-samples.ts";

const MARK = "kcoremark";

/** Places in which a shell reads text as code, now or later. An argument whose mark appears there must be declared as shell code. */
const readers: Readonly<Record<string, RegExp>> = {
  "a shell's -c": /\b(?:ba|da)?sh -c (?:--command )?(?:'(?:[^']|'\\'')*kcoremark|[^\s']*kcoremark)/,
  eval: /\beval (?:'(?:[^']|'\\'')*kcoremark|[^\s']*kcoremark)/,
  on_revert: /\bon_revert (?:'(?:[^']|'\\'')*kcoremark|[^\s']*kcoremark)/,
  "a script's file": /printf %s (?:'(?:[^']|'\\'')*kcoremark|[^\s']*kcoremark)\S* >"\$script"/,
  "cron's line": /^# Managed by kcore\.\n(?:[A-Za-z_]\w*=.*\n)*(?:\S+ ){5}root [^\n]*kcoremark/,
  "systemd's ExecStart": /^ExecStart=\S*sh -c .*kcoremark/m,
  "logrotate's script": /^\s*postrotate\n[\s\S]*kcoremark[\s\S]*endscript/m,
  "a key's command": /command="(?:[^"\\]|\\.)*kcoremark/,
};

type Path = readonly (string | number)[];

function* textsIn(value: unknown, path: Path = []): Generator<readonly [Path, string]> {
  if (typeof value === "string") yield [path, value];
  else if (Array.isArray(value)) for (const [at, one] of value.entries()) yield* textsIn(one, [...path, at]);
  else if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    for (const [key, one] of Object.entries(value)) yield* textsIn(one, [...path, key]);
}

function withLeaf(value: unknown, [key, ...rest]: Path, text: string): unknown {
  if (key === undefined) return text;
  if (Array.isArray(value)) return value.map((one, at) => (at === key ? withLeaf(one, rest, text) : one) as unknown);
  return { ...(value as object), [key]: withLeaf((value as Record<string, unknown>)[key], rest, text) };
}

/** Every text that a step sends to its node; none if the module refuses these arguments. */
function sentBy(module: ModuleDefinition, args: unknown): readonly string[] {
  let step: Step;
  try {
    step = module.step(module.args.parse(args), contextOf({ nodeId: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11" }));
  } catch (error) {
    if (error instanceof Error) return [];
    throw error;
  }
  const blobs: Blob[] = step.data !== undefined && "blob" in step.data ? [step.data.blob] : [];
  const texts = [step.probe, step.guard, step.asks, step.foresee, step.keep, step.apply, step.react].flatMap((text) => {
    blobs.push(...(text?.blobs ?? []));
    return text === undefined ? [] : [text.render({ secret: () => '"$s"', blob: () => '"$b"' })];
  });
  return [...texts, ...blobs.map(({ bytes }) => (bytes === undefined ? "" : Buffer.from(bytes).toString("utf8")))];
}

const key = "AAAAC3NzaC1lZDI1NTE5AAAAIEvHvQH+aUymWiPn6yVl0xaK+K77RBByvV0WFhkg2iyl";
/** Arguments that neither the examples nor the tables use. */
const moreSamples: Readonly<Record<string, readonly object[]>> = {
  "command.run": [{ cmd: "a", revert: "b" }, { argv: ["sh", "-c", "a"] }],
  "script.run": [{ text: "a", revert: "b" }],
  "timer.managed": [{ name: "a", command: ["/bin/sh", "-c", "b"], onCalendar: "daily" }],
  "authorized_key.present": [{ user: "root", keys: `ssh-ed25519 ${key}`, options: ['command="a"'] }],
};

function isDeclared(module: ModuleDefinition, args: unknown): boolean {
  const node = parseSource("args.yaml", JSON.stringify(args));
  return shellSources(module.args, node, args as Record<string, unknown>).some(({ scalar }) =>
    String(scalar.value).includes(MARK),
  );
}

describe("arguments that a shell reads as code", () => {
  const found = new Set<string>();

  for (const [name, load] of registry)
    it(`of ${name} are declared by their type`, async () => {
      const module = await load();
      const undeclared = new Set<string>();
      const { example, cases, more } = samplesOf(name);
      for (const sample of [example, ...cases, ...more, ...(moreSamples[name] ?? [])])
        for (const [path, text] of textsIn(sample)) {
          const marked = withLeaf(sample, path, text.replace(/"?$/, `;${MARK}$&`));
          const sent = sentBy(module, marked);
          for (const [reader, pattern] of Object.entries(readers))
            if (sent.some((one) => pattern.test(one))) {
              found.add(`${name} ${String(path[0])}`);
              if (!isDeclared(module, marked)) undeclared.add(`${path.join(".")}: ${reader}`);
            }
        }
      expect([...undeclared]).to.deep.equal([]);
    });

  it("are found in all modules that are known to have some", () => {
    const known = {
      "authorized_key.present": "options",
      "command.run": "argv cmd revert",
      "cron.managed": "command",
      "file.block": "validate",
      "file.line": "validate",
      "file.managed": "validate",
      "logrotate.managed": "postrotate",
      "script.run": "revert text",
      "timer.managed": "command",
      "wait.for": "command",
    };
    const all = Object.entries(known).flatMap(([name, args]) => args.split(" ").map((one) => `${name} ${one}`));
    expect([...found].sort()).to.deep.equal(all);
  });
});
