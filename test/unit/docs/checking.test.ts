import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { actionNames, findAction } from "#actions/registry.ts";
import { schemaKinds } from "#cli/schema/schemas.ts";
import { sourceLines } from "#cli/terminal/report-failure.ts";
import { registry } from "#engine/modules/registry.ts";
import { checkProject } from "#engine/orchestrate/check-project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { drawProblems } from "#errors/draw.ts";
import { readPages, root } from "#support/pages.ts";
import { inProject } from "#support/in-project.ts";

const page = readPages().find(({ name }) => name === "docs/checking.md");
const blockOf = (info: string): string => page?.blocks.find((block) => block.info === info)?.text ?? "";

describe("docs/checking.md", () => {
  it("shows what kcore check prints", async () => {
    await inProject(
      {
        "roster/r.yaml": "nodes: { n1: { address: 192.0.2.1, roles: [worker] } }\n",
        "orchestrate/web.yaml": 'stages:\n  - { id: web, on: "role:web", apply: [web] }\n',
        "states/web.yaml": `description: A small web server
steps:
  - id: config
    file.managed: { path: /etc/site, content: x, ownr: root }
  - id: service
    servce.running: { name: nginx }
`,
      },
      async (project) => {
        const places = { project, shipped: shippedRoot() };
        const { problems } = await checkProject({ ...places, actions: findAction, actionNames, modules: registry });
        const drawn = drawProblems(problems, { sourceLine: sourceLines(project) });
        expect(`$ kcore check\n${drawn}\n`).to.equal(blockOf("console"));
      },
    );
  });

  it("gives editors the files that kcore schema --out writes", () => {
    const files = schemaKinds.map((kind) => `.vscode/kcore/${kind}.schema.json`);
    const { "yaml.schemas": schemas } = JSON.parse(blockOf("json")) as { "yaml.schemas": object };
    expect(Object.keys(schemas)).to.have.members(files);
    expect(Array.from(blockOf("lua").matchAll(/"(\.vscode[^"]*)"/g), ([, file]) => file)).to.have.members(files);
  });

  it("names the hook that pre-commit finds here", () => {
    const [hook] = parse(readFileSync(join(root, ".pre-commit-hooks.yaml"), "utf8")) as Record<string, string>[];
    expect(page?.text).to.contain(`{ id: ${hook?.["id"]} }`);
    expect(hook).to.include({ entry: "kcore check", language: "system", pass_filenames: false });
    for (const file of ["states/web.yaml", "dc1/roster/nodes.yaml"])
      expect(file).to.match(new RegExp(hook?.["files"] ?? "^$"));
  });
});
