import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { on, openBastion, type Bastion } from "#support/deploy.ts";
import { fits, readGuides, wordsOf, type TranscriptStep } from "#support/transcripts.ts";

const labName = "cluster-guides";
const page = join(import.meta.dirname, "../../docs/cluster.md");
/** As the page calls the four machines, and their host keys. */
const shown = { a: "192.0.2.11", b: "192.0.2.12", c: "192.0.2.13", d: "192.0.2.14" } as const;
type Name = keyof typeof shown;
const names = Object.keys(shown) as Name[];

describe("the guides of docs/cluster.md that add machines, on real nodes", function () {
  this.timeout(900_000);
  let lab: Lab;
  let bastion: Bastion;
  let nodes: ReadonlyMap<Name, LabNode>;

  before(async () => {
    lab = await openLab({ name: labName });
    await lab.down();
    const made = await lab.up(names.map((name) => ({ name, kind: "debian" as const, disks: ["64M"] })));
    nodes = new Map(names.map((name, index) => [name, made[index] as LabNode]));
    // All at once, what the deployments would otherwise install one after the other.
    const packages = "apt-get -q update && apt-get -qy install gdisk nix-bin nix-setup-systemd openssl";
    await Promise.all(made.map((node) => on(node, packages, 600_000)));
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${made[0]?.identityFile ?? ""} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
  });
  after(async () => {
    await bastion?.remove();
    await (await openLab({ name: labName })).down();
  });

  for (const { title, steps, needsLab, files } of readGuides(page))
    if (needsLab)
      it(title, async () => {
        for (const [name, text] of files)
          await writeFile(join(bastion.project, name), text.replaceAll(/[^\s"]+/g, toReal));
        for (const step of steps) await follow(step);
      });

  async function follow(step: TranscriptStep): Promise<void> {
    const [program, ...words] = wordsOf(step.command).map(toReal);
    expect(program, `docs/cluster.md:${step.line}`).to.equal("kcore");
    const run = async () => {
      const { code, stdout, stderr } = await bastion.kcore(words, { timeout: 600_000 });
      return { code, output: toShown(stderr + stdout) };
    };
    let { code, output } = await run();
    // What one controller was told reaches the others in a moment, and the first heartbeat takes another.
    for (let turn = 0; turn < 20 && /^(get|health)$/.test(words[0] ?? "") && !fits(output, step.output); turn++) {
      await sleep(1000);
      ({ code, output } = await run());
    }
    const message = `docs/cluster.md:${step.line}: $ ${step.command}\n${output}instead of\n${step.output.join("\n")}\n`;
    expect(fits(output, step.output), message).to.equal(true);
    expect(code, message).to.equal(step.exitCode);
  }

  function toReal(word: string): string {
    const key = names.find((name) => word === `SHA256:${name.toUpperCase()}`);
    if (key) return parseHostKey(nodes.get(key)?.hostKey ?? "")?.fingerprint ?? word;
    return names.reduce((text, name) => text.replace(shown[name], nodes.get(name)?.address ?? ""), word);
  }

  function toShown(text: string): string {
    return names.reduce((done, name) => done.replaceAll(nodes.get(name)?.address ?? "?", shown[name]), text);
  }
});
