import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject, type Ended } from "#support/kcore.ts";
import { startSshd } from "#support/sshd.ts";
import type { SshServer } from "#support/ssh-server.ts";

/** What an operator gets wrong, and what kcore must say: the code, the place, and what to do next. */
interface Mistake {
  readonly what: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly words: readonly string[];
  readonly code: string;
  readonly place?: RegExp;
  readonly hint: RegExp;
}

const step = 'steps:\n  - id: written\n    file.managed: { path: "/tmp/kcore-bad-input", content: x }\n';
const apply = (state: string): readonly string[] => ["state", "apply", state, "--on", "here"];

const mistakes: readonly Mistake[] = [
  {
    what: "a roster with a misspelt key",
    files: { "roster/more.yaml": "nodes:\n  n9: { adress: 192.0.2.9 }\n" },
    words: apply("good"),
    code: "YAML_KEY_UNKNOWN",
    place: /roster\/more\.yaml:2:9 /,
    hint: /did you mean “address”/,
  },
  {
    what: "a roster with one address under two names",
    files: { "roster/more.yaml": "nodes:\n  n8: { address: 192.0.2.9 }\n  n9: { address: 192.0.2.9 }\n" },
    words: apply("good"),
    code: "ROSTER_DUPLICATE",
    place: /roster\/more\.yaml:3:\d+ /,
    hint: /stateDir/,
  },
  {
    what: "a roster with a secret in it",
    files: { "roster/more.yaml": "nodes:\n  n9: { address: 192.0.2.9, sudo: { password: hunter2 } }\n" },
    words: apply("good"),
    code: "SECRET_LITERAL",
    place: /roster\/more\.yaml:2:\d+ /,
    hint: /change the secret/,
  },
  {
    what: "a state with an unknown module",
    files: { "states/bad.yaml": `${step}  - id: next\n    servce.running: { name: x }\n` },
    words: apply("bad"),
    code: "STATE_MODULE_UNKNOWN",
    place: /states\/bad\.yaml:5:5 /,
    hint: /did you mean “service\.running”/,
  },
  {
    what: "a state that is no YAML",
    files: { "states/bad.yaml": "steps:\n  - id: [written\n" },
    words: apply("bad"),
    code: "YAML_SYNTAX",
    place: /states\/bad\.yaml:\d+:\d+ /,
    hint: /./,
  },
  {
    what: "a state that is not there",
    words: apply("goood"),
    code: "STATE_NOT_FOUND",
    hint: /did you mean “good”|kcore state list/,
  },
  {
    what: "a state with an undefined name in its last step",
    files: { "states/bad.yaml": `${step}  - id: next\n    file.absent: { path: "/tmp/{{vars.nope}}" }\n` },
    words: apply("bad"),
    code: "EXPRESSION_UNDEFINED",
    place: /states\/bad\.yaml:5:\d+ /,
    hint: /./,
  },
  {
    what: "a template with an undefined name",
    files: {
      "states/bad.yaml": `${step}  - id: next\n    file.managed: { path: /tmp/kcore-bad-input, template: t.hbs }\n`,
      "templates/t.hbs": "one\ntwo {{node.nme}}\n",
    },
    words: apply("bad"),
    code: "EXPRESSION_UNDEFINED",
    place: /templates\/t\.hbs:2:\d+ /,
    hint: /did you mean “name”|node/,
  },
  {
    what: "an orchestration with an unknown key",
    files: { "orchestrate/bad.yaml": "stages:\n  - { id: one, onn: here, apply: [good] }\n" },
    words: ["orchestrate", "bad"],
    code: "YAML_KEY_UNKNOWN",
    place: /orchestrate\/bad\.yaml:2:\d+ /,
    hint: /did you mean “on”/,
  },
  {
    what: "an orchestration with an unknown action in its last stage",
    files: {
      "orchestrate/bad.yaml":
        "stages:\n  - { id: one, on: here, apply: [good] }\n  - { id: two, run: cluster.helth }\n",
    },
    words: ["orchestrate", "bad"],
    code: "ACTION_UNKNOWN",
    place: /orchestrate\/bad\.yaml:3:\d+ /,
    hint: /did you mean “cluster\.health”/,
  },
  {
    what: "an orchestration that is not there",
    words: ["orchestrate", "deploy_nod", "here"],
    code: "ORCHESTRATION_NOT_FOUND",
    hint: /did you mean “deploy_node”/,
  },
  {
    what: "deploy_node without nodes",
    words: ["orchestrate", "deploy_node"],
    code: "TARGET_MISSING",
    hint: /here/,
  },
  {
    what: "a parameter that is not there",
    words: ["orchestrate", "deploy_node", "here", "--set", "memry=1G"],
    code: "PARAM_UNKNOWN",
    hint: /did you mean “memory”/,
  },
  {
    what: "a node that is not in the roster",
    words: ["state", "apply", "good", "--on", "heer"],
    code: "TARGET_UNKNOWN",
    hint: /did you mean “here”|here/,
  },
  {
    what: "a target that matches nothing",
    words: ["state", "apply", "good", "--on", "role:storage"],
    code: "TARGET_EMPTY",
    hint: /here/,
  },
  {
    what: "a target that cannot be read",
    words: ["state", "apply", "good", "--on", "here and ("],
    code: "TARGET_SYNTAX",
    hint: /./,
  },
];

describe("kcore, given bad input", function () {
  this.timeout(60_000);
  let project: TestProject;
  const written = "/tmp/kcore-bad-input";

  beforeEach(() => {
    project = new TestProject({ "states/good.yaml": step });
  });
  afterEach(() => project.remove());

  const put = (files: Readonly<Record<string, string>>): void => {
    project.write(Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])));
  };
  const expectRefusal = (ended: Ended, exit: number, code: string): string => {
    const said = ended.stdout + ended.stderr;
    expect(ended.code, said).to.equal(exit);
    expect(said).to.include(`[${code}]`);
    expect(said.trimEnd().split("\n").length, said).to.be.at.most(24);
    expect(said, "a stack").to.not.match(/^ +at .*\.ts:/m);
    expect(existsSync(written)).to.equal(false);
    return said;
  };

  for (const { what, files = {}, words, code, place, hint } of mistakes)
    it(`refuses ${what} with the place and a hint, and changes nothing`, async () => {
      put(files);
      const said = expectRefusal(await project.kcore(...words), 2, code);
      if (place) expect(said).to.match(place);
      expect(/hint: [^]*/.exec(said)?.[0]).to.match(hint);
      expect(said).to.not.include("hunter2");
    });

  it("says which host did not answer, and exits 3 when nothing else failed", async () => {
    const said = expectRefusal(await project.kcore("state", "apply", "good", "--on", "gone"), 3, "HOST_UNREACHABLE");
    expect(said)
      .to.match(/gone/)
      .and.match(/127\.0\.0\.1/);
    expect(said).to.match(/kcore runs resume \S+/);
  });

  describe("to an SSH server", () => {
    let server: SshServer;
    before(async () => {
      server = await startSshd();
    });
    after(() => server.stop());

    const roster = (hostKey: string): string => `nodes:
  changed:
    address: 127.0.0.1
    port: ${server.port}
    identityFile: ${server.identityFile}
    hostKeys: [${hostKey}]
    stateDir: ${join(project.path, "state")}
`;

    it("refuses a changed host key, shows both and how to trust the new one, and sends nothing (S-2)", async () => {
      const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEVjC0ds2MBSreAuZIHQOAGBixdxvhSt7SAVziDMCK/x";
      put({ "roster/more.yaml": roster(other) });
      const said = expectRefusal(
        await project.kcore("state", "apply", "good", "--on", "changed"),
        1,
        "HOST_KEY_CHANGED",
      );
      expect(said).to.match(/kcore roster trust --replace changed/);
      expect(said.match(/SHA256:\S+/g)?.length).to.be.at.least(2);
      expect(await server.log()).to.not.match(/Accepted/);
    });
  });
});
