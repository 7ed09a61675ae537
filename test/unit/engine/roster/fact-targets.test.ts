import { join } from "node:path";
import { mkdirSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { keepFacts, readFacts } from "#engine/facts/node-files.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import { keptFacts, type KeptFactsOptions } from "#engine/roster/kept-facts.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { matchTargets, nodesNeedingFacts } from "#engine/roster/targets.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn } from "#support/problems.ts";

const files = {
  "roster/a.yaml": `nodes:
  n1: { address: h1, roles: [worker] }
  n2: { address: h2, roles: [worker] }
  n3: { address: h3 }
`,
};
const gatheredFacts = {
  n1: {
    "os.id": "debian",
    "os.version": "12",
    "kernel.release": "6.1.0-18-amd64",
    "memory.totalKiB": "8000000",
    "os.name": "Debian GNU/Linux 12 (bookworm)",
    nix: "true",
    "network.addresses": "192.0.2.1\n198.51.100.1",
    disks: "sda\t1000\tS1\t\tSamsung 980\nsdb\t2000",
  },
  n2: {
    "os.id": "alpine",
    "os.version": "3.20.1",
    "kernel.release": "6.10.3-virt",
    "memory.totalKiB": "512000",
    nix: "false",
  },
};

/** A project with the facts of n1 and n2, gathered at time 1000; n3 has none. */
function withFacts<T>(work: (project: string) => T): T {
  return inProject(files, (project) => {
    for (const [node, flat] of Object.entries(gatheredFacts))
      keepFacts(project, { node, run: "r1", gathered: 1000, facts: shapeFacts(flat) });
    return work(project);
  });
}

function match(project: string, expression: string, options: Partial<KeptFactsOptions> = {}): string {
  const roster = { ...loadRoster(project), facts: keptFacts({ project, since: 0, ...options }) };
  return matchTargets(expression, roster)
    .map(({ name }) => name)
    .join(" ");
}

describe("fact terms of targets", () => {
  const cases: Readonly<Record<string, string>> = {
    "fact:os.id=debian": "n1",
    "fact:os.id=deb*": "n1",
    "fact:os.id!=debian": "n2",
    "fact:os.id=[ad]*": "n1 n2",
    "fact:os.version>=12": "n1",
    "fact:os.version<12": "n2",
    "fact:os.version<=3.20.1": "n2",
    "fact:os.version>3.9": "n1 n2",
    "fact:kernel.release>=6.2": "n2",
    "fact:kernel.release>=6.1": "n1 n2",
    "fact:memory.totalKiB>1000000": "n1",
    "fact:memory.totalKiB=512000": "n2",
    "fact:nix": "n1",
    "fact:nix=false": "n2",
    "fact:os.name='Debian GNU/Linux 12 (bookworm)'": "n1",
    'fact:disks.model="Samsung *"': "n1",
    "fact:network.addresses=192.0.2.*": "n1",
    "fact:network.addresses!=192.0.2.*": "n2",
    "fact:network.addresses": "n1",
    "fact:disks.bytes>=2000": "n1",
    "fact:disks.0.bytes>=2000 or n2": "n2",
    "fact:os.codename!=bookworm": "n1 n2",
    "not fact:os.id=debian": "n2",
  };
  it("match by text, pattern, number and version", () =>
    withFacts((project) => {
      for (const [expression, names] of Object.entries(cases))
        expect(match(project, `role:worker and (${expression})`), expression).to.equal(names);
    }));

  it("need facts only of nodes that the other terms leave undecided", () =>
    withFacts((project) => {
      expect(match(project, "n3 or fact:os.id=debian")).to.equal("n1 n3");
      expect(match(project, "not n3 and fact:os.id=debian")).to.equal("n1");
      const roster = loadRoster(project);
      const undecided = (text: string) => nodesNeedingFacts(text, roster).map(({ name }) => name);
      expect(undecided("role:worker and fact:os.id=x")).to.deep.equal(["n1", "n2"]);
      expect([undecided("n1 or not fact:os.id=x"), undecided("role:worker")]).to.deep.equal([["n2", "n3"], []]);
    }));

  it("are an error for a node without facts, also behind not", () =>
    withFacts((project) => {
      for (const expression of ["fact:os.id=debian", "not fact:os.id=debian", "* and fact:nix"])
        expect(problemsIn(() => match(project, expression))).to.deep.equal([
          `“${expression}” asks for facts that are not known, or too old, of n3 [TARGET_FACTS_UNKNOWN] | kcore facts --on 'n3', or --refresh-facts; --unknown-facts skip leaves such nodes out`,
        ]);
      expect(match(project, "fact:os.id=debian", { skipUnknown: true })).to.equal("n1");
      expect(match(project, "not fact:os.id=debian", { skipUnknown: true })).to.equal("n2");
    }));

  it("ignore facts that are too old, damaged, or another node's", () =>
    withFacts((project) => {
      expect(problemsIn(() => match(project, "n1 and fact:nix", { since: 1001 }))[0]).to.include("of n1 [");
      expect(match(project, "n1 and fact:nix", { since: 1000 })).to.equal("n1");
      for (const text of ["", "{", "null", '{"version":1,"node":"n2","gathered":1000,"facts":{}}']) {
        writeFileSync(join(project, ".kcore/facts/n1.json"), text);
        expect(readFacts(project, "n1")).to.equal(undefined);
      }
    }));

  it("match the same nodes in a resumed run, though newer facts exist", () =>
    withFacts((project) => {
      const file = join(project, "fact-terms.json");
      const run = (isResumed: boolean) => match(project, "role:worker and fact:nix", { decided: { file, isResumed } });
      expect(run(false)).to.equal("n1");
      keepFacts(project, { node: "n2", run: "r2", gathered: 2000, facts: shapeFacts({ nix: "true" }) });
      expect([run(true), run(false)]).to.deep.equal(["n1", "n1 n2"]);
    }));

  it("use the earlier facts where new ones cannot be stored, with a warning", () =>
    withFacts((project) => {
      mkdirSync(join(project, ".kcore", "facts", "n9.json"));
      const write = process.stderr.write.bind(process.stderr);
      let warning = "";
      process.stderr.write = (text: string | Uint8Array) => (warning += String(text)) !== "";
      try {
        keepFacts(project, { node: "n9", run: "r2", gathered: 2000, facts: shapeFacts({ nix: "false" }) });
      } finally {
        process.stderr.write = write;
      }
      expect(warning).to.match(/^the facts of n9 could not be kept: EISDIR/);
      expect(match(project, "role:worker and fact:nix")).to.equal("n1");
    }));

  it("are refused with an unknown fact or invalid syntax", () =>
    withFacts((project) => {
      const problem = (text: string) => problemsIn(() => match(project, text))[0];
      expect(problem("fact:os.idd=x")).to.equal("no fact “os.idd” [TARGET_SYNTAX] | did you mean “os.id”?");
      expect(problem("fact:os=x")).to.include("no fact “os”");
      expect(problem("fact:=x")).to.include("names no fact");
      expect(problem("fact:os.version>=twelve")).to.include("“>=” compares with a number or a version, not “twelve”");
      expect(problem("fact:os.id=")).to.include("needs a value behind “=”");
      expect(problem("fact:os.name='x")).to.include("[TARGET_SYNTAX]");
    }));
});
