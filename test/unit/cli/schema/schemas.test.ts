import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { expect } from "chai";
import { parseAllDocuments } from "yaml";
import { actionNames } from "#actions/registry.ts";
import type { JsonSchema } from "#cli/modules/json-schema.ts";
import { schemaCommand } from "#cli/schema/schema-command.ts";
import { jsonSchemaOf, schemaKinds, type SchemaKind } from "#cli/schema/schemas.ts";
import { registry } from "#engine/modules/registry.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { moduleExample } from "#cli/modules/known-modules.ts";
import { casesOf } from "#support/cases/read.ts";
import { readPages } from "#support/pages.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const root = shippedRoot();
const compiled = new Map<SchemaKind, ValidateFunction>();

async function validatorOf(kind: SchemaKind): Promise<ValidateFunction> {
  const known = compiled.get(kind);
  if (known) return known;
  // Formats (date-time, ipv4) are remarks for readers: kcore checks such values itself.
  const ajv = new Ajv({
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    validateFormats: false,
  });
  const validate = ajv.compile(await jsonSchemaOf(kind));
  compiled.set(kind, validate);
  return validate;
}

/** The places at which the schema refuses a text, such as `/steps/0/file.managed mode`, without errors that only follow from others. */
async function refusedAt(kind: SchemaKind, text: string): Promise<readonly string[]> {
  const validate = await validatorOf(kind);
  const values = parseAllDocuments(text, { version: "1.2" }).map((document) => document.toJS() as unknown);
  const errors: ErrorObject[] = values.flatMap((value) => (validate(value) ? [] : (validate.errors ?? [])));
  const isRule = ({ keyword, schemaPath }: ErrorObject): boolean =>
    !["if", "anyOf", "oneOf"].includes(keyword) && !/\/oneOf\/\d+\//.test(schemaPath);
  const plain = errors.filter(isRule);
  const shown = (plain.length > 0 ? plain : errors.filter(({ keyword }) => keyword === "oneOf")).map(
    ({ instancePath, params }) => {
      const { additionalProperty, missingProperty } = params as Readonly<Record<string, string | undefined>>;
      return [instancePath || "/", additionalProperty ?? missingProperty].filter(Boolean).join(" ");
    },
  );
  return [...new Set(shown)];
}

function filesBelow(folder: string): readonly string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".yaml")).map((name) => join(folder, name));
}

describe("JSON Schema", () => {
  const written = folderOfEachTest("schema");

  for (const [kind, folder] of [
    ["state", "states"],
    ["orchestration", "orchestrate"],
    ["roster", "roster"],
  ] as const)
    for (const file of filesBelow(folder))
      it(`accepts ${file}`, async () =>
        expect(await refusedAt(kind, readFileSync(join(root, file), "utf8"))).to.deep.equal([]));

  it("accepts the examples of README and docs", async () => {
    const kinds: Readonly<Record<string, SchemaKind>> = {
      kind: "manifest",
      stages: "orchestration",
      steps: "state",
      cluster: "project",
      drain: "project",
    };
    const found = new Set<SchemaKind>();
    for (const { blocks } of readPages({ adr: false }))
      for (const { info, text, at, page } of blocks) {
        // A project's own modules are only in the schema made there; a pipeline's schema is its CI's.
        if (!/^yaml\b/.test(info) || /^ +site\.\w+:/m.test(text) || page === "docs/ci.md") continue;
        const isRoster = /^nodes:/m.test(text);
        const key = Object.keys(kinds).find((word) => new RegExp(`^${word}:`, "m").test(text)) ?? "";
        const kind = isRoster ? "roster" : kinds[key];
        if (!kind) continue;
        found.add(kind);
        expect(await refusedAt(kind, text.replaceAll("AAAA…", "AAAA")), at).to.deep.equal([]);
      }
    expect([...found]).to.have.members(schemaKinds);
  });

  it("accepts the example of every module", async () => {
    for (const name of registry.keys()) {
      const step = (moduleExample(name) ?? "").replaceAll(/^/gm, "    ");
      expect(await refusedAt("state", `steps:\n  - id: x\n${step}\n`), name).to.deep.equal([]);
    }
  });

  it("accepts expressions for numbers, booleans, enums, lists, maps and all arguments", async () => {
    const text = `
steps:
  - id: x
    disk.partitioned: { disk: "{{item}}", partitions: "{{params.list}}" }
    each: "{{node.disks}}"
    when: "{{eq node.dc 'DC1'}}"
    timeout: "{{params.limit}}"
    retry: { attempts: "{{params.n}}", interval: 5s }
  - id: y
    network.interface: { name: e1, mtu: "{{params.mtu}}", dhcp: "{{vars.dhcp}}", bridge: { stp: "{{vars.stp}}" } }
  - id: z
    service.running: "{{params.all}}"
`;
    expect(await refusedAt("state", text)).to.deep.equal([]);
  });

  type Refused = Readonly<Record<string, string | readonly string[]>>;
  for (const [kind, texts] of Object.entries(casesOf<Record<SchemaKind, Refused>>("schema-refused.yaml")))
    for (const [text, places] of Object.entries(texts))
      it(`refuses, as a ${kind}: ${text.replaceAll("\n", "; ")}`, async () =>
        expect(await refusedAt(kind as SchemaKind, text)).to.have.members([places].flat()));

  it("accepts manifests with keys in snake_case and kinds in any case", async () => {
    const text = "kind: node-install\nspec: { node: 192.0.2.1, os_disk: /dev/sda, lvm_vg_name: vg }\n";
    expect(await refusedAt("manifest", text)).to.deep.equal([]);
    const update = `kind: cluster_update
metadata: { name: r1 }
spec:
  target: { flake_ref: "github:o/r", flake_rev: ${"a".repeat(40)}, nixpkgsRev: "" }
  selector: { all_nodes: true, labels: [a=b] }
  strategy: { strategy_type: ONE_AT_A_TIME, max_unavailable: 0, canary: { labels: { a: b } } }
  activation: { mode: Auto, reboot_policy: "" }
`;
    expect(await refusedAt("manifest", update)).to.deep.equal([]);
  });

  it("has every module and action, and a description of every key at every depth", async () => {
    const undescribed: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (Array.isArray(value)) for (const [index, one] of value.entries()) walk(one, `${path}[${index}]`);
      else if (typeof value === "object" && value !== null)
        for (const [key, inner] of Object.entries(value as JsonSchema)) {
          // A keyword that only selects the kind, or repeats a key's other spelling, needs no description.
          if (["if", "patternProperties", "examples", "default"].includes(key)) continue;
          if (key !== "properties") {
            walk(inner, `${path}.${key}`);
            continue;
          }
          for (const [name, property] of Object.entries(inner as Readonly<Record<string, JsonSchema>>)) {
            if (!property.description && property.$ref === undefined) undescribed.push(`${path}.${name}`);
            walk(property, `${path}.${name}`);
          }
        }
    };
    for (const kind of schemaKinds) walk(await jsonSchemaOf(kind), kind);
    expect(undescribed).to.deep.equal([]);
    expect(Object.keys(((await jsonSchemaOf("state")) as { definitions: object }).definitions)).to.include.members([
      ...registry.keys(),
    ]);
    expect(JSON.stringify(await jsonSchemaOf("orchestration"))).to.satisfy((text: string) =>
      actionNames.every((name) => text.includes(`"${name}"`)),
    );
  });

  it("is written into a folder, one file for each kind", async () => {
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = () => true;
    try {
      await schemaCommand().parseAsync(["--out", written("new")], { from: "user" });
      expect(readdirSync(written("new"))).to.have.members(schemaKinds.map((kind) => `${kind}.schema.json`));
      const text = readFileSync(written("new", "state.schema.json"), "utf8");
      expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(await jsonSchemaOf("state"))));
    } finally {
      process.stdout.write = write;
    }
  });
});
