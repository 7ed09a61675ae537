import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { parseHostKey } from "#engine/transport/host-key.ts";
import type { LabNode } from "#lab/lab.ts";
import type { Bastion } from "./deploy.ts";
import { fits, wordsOf, type TranscriptStep } from "./transcripts.ts";

export const installPage = join(import.meta.dirname, "../../docs/cluster-install.md");

/** The addresses of docs/cluster-install.md; the machines' host keys are SHA256:A and so on. */
const shown = { a: "192.0.2.11", b: "192.0.2.12", c: "192.0.2.13", d: "192.0.2.14" } as const;
type Name = keyof typeof shown;
export const shownNames = Object.keys(shown) as readonly Name[];

/** Follows a page's transcripts on machines of the lab, in place of the page's machines. */
export class GuideFollower {
  private readonly bastion: Bastion;
  private readonly nodes: ReadonlyMap<string, LabNode>;
  /** Words of the page, such as disks, with the lab's words. */
  private readonly words: Readonly<Record<string, string>>;

  constructor(bastion: Bastion, nodes: readonly LabNode[], words: Readonly<Record<string, string>> = {}) {
    this.bastion = bastion;
    this.nodes = new Map(nodes.map((node) => [node.name, node]));
    this.words = words;
  }

  /** Runs the page's command, with `more` that the lab needs, and compares its output with the page. */
  async follow(step: TranscriptStep, more: readonly string[] = []): Promise<void> {
    const [program, ...words] = wordsOf(step.command).map((word) => this.toReal(word));
    expect(program, `docs/cluster-install.md:${step.line}`).to.equal("kcore");
    const run = async () => {
      const { code, stdout, stderr } = await this.bastion.kcore([...words, ...more], { timeout: 900_000 });
      return { code, output: this.toShown(stderr + stdout) };
    };
    let { code, output } = await run();
    // A write reaches the other controllers a moment later; the first heartbeat comes later still.
    for (let turn = 0; turn < 120 && /^(get|health)$/.test(words[0] ?? "") && !fits(output, step.output); turn++) {
      await sleep(1000);
      ({ code, output } = await run());
    }
    const message = `docs/cluster-install.md:${step.line}: $ ${step.command}\n${output}instead of\n${step.output.join("\n")}\n`;
    expect(fits(output, step.output), message).to.equal(true);
    expect(code, message).to.equal(step.exitCode);
  }

  toReal(word: string): string {
    const key = shownNames.find((name) => word === `SHA256:${name.toUpperCase()}`);
    if (key) return parseHostKey(this.nodes.get(key)?.hostKey ?? "")?.fingerprint ?? word;
    const own = this.words[word] ?? word;
    return shownNames.reduce((text, name) => text.replace(shown[name], this.nodes.get(name)?.address ?? ""), own);
  }

  private toShown(text: string): string {
    // The lab's machines get the time once, to the second, and no time server after that.
    text = text.replaceAll(/^warning: .* \(CLOCK_DRIFT \S+\)\n/gm, "");
    const known = shownNames.flatMap((name) => this.nodes.get(name) ?? []);
    return known.reduce((done, node) => done.replaceAll(node.address, shown[node.name as Name]), text);
  }
}
