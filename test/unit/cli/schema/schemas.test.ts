import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { expect } from "chai";
import { parseAllDocuments } from "yaml";
import { actionNames } from "#actions/registry.ts";
import type { JsonSchema } from "#cli/schema/json-schema.ts";
import { schemaCommand } from "#cli/schema/schema-command.ts";
import { jsonSchemaOf, schemaKinds, type SchemaKind } from "#cli/schema/schemas.ts";
import { registry } from "#engine/modules/registry.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { moduleExample } from "#cli/modules/module-example.ts";
import { readPages } from "#support/pages.ts";

const root = shippedRoot();
const compiled = new Map<SchemaKind, ValidateFunction>();

async function validatorOf(kind: SchemaKind): Promise<ValidateFunction> {
  const known = compiled.get(kind);
  if (known) return known;
  // Formats (date-time, ipv4) are remarks to whoever reads them: kcore checks them itself.
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

/** Where a text is refused: `/steps/0/file.managed mode`. What only says that another rule failed is left out. */
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
  for (const [kind, folder] of [
    ["state", "states"],
    ["orchestration", "orchestrate"],
    ["roster", "roster"],
  ] as const)
    for (const file of filesBelow(folder))
      it(`takes ${file}`, async () => {
        expect(await refusedAt(kind, readFileSync(join(root, file), "utf8"))).to.deep.equal([]);
      });

  it("takes the examples of README and docs", async () => {
    const kinds: Readonly<Record<string, SchemaKind>> = { kind: "manifest", stages: "orchestration", steps: "state" };
    const found = new Set<SchemaKind>();
    for (const { blocks } of readPages({ adr: false }))
      for (const { info, text, at, page } of blocks) {
        // A project's own modules are in the schema that is made there; a pipeline's schema is that of its CI.
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

  it("takes the example of every module", async () => {
    for (const name of registry.keys()) {
      const step = (moduleExample(name) ?? "").replaceAll(/^/gm, "    ");
      expect(await refusedAt("state", `steps:\n  - id: x\n${step}\n`), name).to.deep.equal([]);
    }
  });

  it("takes expressions in the place of numbers, booleans, enums, lists, maps and all arguments", async () => {
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

  const wrong: readonly (readonly [SchemaKind, string, readonly string[]])[] = [
    ["state", "description: nothing", ["/ steps"]],
    ["state", "steps: [{ id: a, servce.running: { name: x } }]", ["/steps/0 servce.running"]],
    [
      "state",
      "steps: [{ id: a, service.running: { nam: x } }]",
      ["/steps/0/service.running name", "/steps/0/service.running nam"],
    ],
    ["state", "steps: [{ service.running: { name: x } }]", ["/steps/0 id"]],
    ["state", "steps: [{ id: a, when: true }]", ["/steps/0"]],
    ["state", "steps: [{ id: a, service.running: { name: x }, service.stopped: { name: y } }]", ["/steps/0"]],
    ["state", "steps: [{ id: a, port.open: { port: many } }]", ["/steps/0/port.open/port"]],
    ["state", "steps: [{ id: a, file.managed: { path: /a, content: '', mode: 420 } }]", ["/steps/0/file.managed/mode"]],
    [
      "state",
      "steps: [{ id: a, file.managed: { path: /a, content: '', mode: '888' } }]",
      ["/steps/0/file.managed/mode"],
    ],
    ["state", "steps: [{ id: a, fact.assert: { that: [{ os: { id: 4 } }] } }]", ["/steps/0/fact.assert/that/0/os/id"]],
    ["state", "steps: [{ id: a, fact.assert: { that: [{ oss: 1 }] } }]", ["/steps/0/fact.assert/that/0 oss"]],
    ["state", "steps: [{ id: a, reboot.done: , retry: { attempts: 0 } }]", ["/steps/0/retry/attempts"]],
    ["state", "steps: [{ include: a b }]", ["/steps/0/include"]],
    ["state", "steps: [{ include: a, timeout: 3s }]", ["/steps/0 timeout"]],
    ["state", "params: { p: { type: text } }\nsteps: []", ["/params/p/type"]],
    ["orchestration", "stages: []", ["/stages"]],
    ["orchestration", "stages: [{ id: a, run: cluster.helth }]", ["/stages/0/run"]],
    ["orchestration", "stages: [{ id: a, run: wait, seconds: 3 }]", ["/stages/0 seconds"]],
    ["orchestration", "stages: [{ id: a, run: wait, with: { secs: 3 } }]", ["/stages/0/with secs"]],
    ["orchestration", "stages: [{ id: a, run: confirm }]", ["/stages/0 message"]],
    ["orchestration", "stages: [{ id: a, on: n1, apply: [web], batch: lots }]", ["/stages/0/batch"]],
    ["orchestration", "stages: [{ id: a, on: n1, apply: [web], order: last }]", ["/stages/0/order"]],
    [
      "orchestration",
      "stages: [{ id: a, on: n1, apply: [web], onFailure: [{ id: 3, run: wait }] }]",
      ["/stages/0/onFailure/0/id"],
    ],
    ["orchestration", "stages: [{ include: deploy_node, on: n1 }]", ["/stages/0 on"]],
    ["roster", "nodes: { n1: { adress: 192.0.2.1 } }", ["/nodes/n1 adress"]],
    ["roster", "nodes: { n1: { address: 192.0.2.1, port: 70000 } }", ["/nodes/n1/port"]],
    ["roster", "defaults: { transport: telnet }", ["/defaults/transport"]],
    ["roster", "nodes: { n1: { address: a, disks: [{ serial: A, use: data }] } }", ["/nodes/n1/disks/0/use"]],
    ["roster", "hosts: {}", ["/ hosts"]],
    ["manifest", "spec: {}", ["/ kind"]],
    ["manifest", "kind: Pod", ["/kind"]],
    ["manifest", "kind: Node\nmetadata: { name: n1 }\nspec: { dc: [] }", ["/spec/dc"]],
    [
      "manifest",
      "kind: ClusterUpdate\nmetadata: { name: a }\nspec: { target: { flakeRev: main }, selector: { labels: { a: 1 } }, drainVm: true, approvalPolicy: none }",
      [
        "/spec drainVm",
        "/spec/approvalPolicy",
        "/spec/target/flakeRev",
        "/spec/selector/labels",
        "/spec/selector/labels/a",
      ],
    ],
    ["manifest", "kind: node-install\nspec: { node: a, os_dsk: b }", ["/spec os_dsk", "/spec osDisk", "/spec os_disk"]],
  ];
  for (const [kind, text, places] of wrong)
    it(`refuses, as a ${kind}: ${text.replaceAll("\n", "; ")}`, async () => {
      expect(await refusedAt(kind, text)).to.have.members(places);
    });

  it("takes manifests with keys in snake_case, and kinds in any case", async () => {
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

  it("knows every module and action, and describes every key at every depth", async () => {
    const silent: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (Array.isArray(value)) for (const [index, one] of value.entries()) walk(one, `${path}[${index}]`);
      else if (typeof value === "object" && value !== null)
        for (const [key, inner] of Object.entries(value as JsonSchema)) {
          // What only asks which kind it is, and the other spelling of a key, need no words.
          if (["if", "patternProperties", "examples", "default"].includes(key)) continue;
          if (key !== "properties") {
            walk(inner, `${path}.${key}`);
            continue;
          }
          for (const [name, property] of Object.entries(inner as Readonly<Record<string, JsonSchema>>)) {
            if (!property.description && property.$ref === undefined) silent.push(`${path}.${name}`);
            walk(property, `${path}.${name}`);
          }
        }
    };
    for (const kind of schemaKinds) walk(await jsonSchemaOf(kind), kind);
    expect(silent).to.deep.equal([]);
    expect(Object.keys(((await jsonSchemaOf("state")) as { definitions: object }).definitions)).to.include.members([
      ...registry.keys(),
    ]);
    expect(JSON.stringify(await jsonSchemaOf("orchestration"))).to.satisfy((text: string) =>
      actionNames.every((name) => text.includes(`"${name}"`)),
    );
  });

  it("goes into a folder, a file for each kind", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kcore-schema-"));
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = () => true;
    try {
      await schemaCommand().parseAsync(["--out", join(folder, "new")], { from: "user" });
      const names = readdirSync(join(folder, "new"));
      expect(names).to.have.members(schemaKinds.map((kind) => `${kind}.schema.json`));
      const text = readFileSync(join(folder, "new", "state.schema.json"), "utf8");
      expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(await jsonSchemaOf("state"))));
    } finally {
      process.stdout.write = write;
      rmSync(folder, { recursive: true });
    }
  });
});
