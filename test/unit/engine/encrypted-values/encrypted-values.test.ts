import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { lock } from "#engine/encrypted-values/age.ts";
import { headerOf } from "#engine/encrypted-values/header.ts";
import { identityFile } from "#engine/encrypted-values/identities.ts";
import { openerOf } from "#engine/encrypted-values/opener.ts";
import { checkPlaces, placeText } from "#engine/encrypted-values/places.ts";
import { readRecipients, requireRecipients, sealFor } from "#engine/encrypted-values/recipients.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { knownSecrets } from "#engine/step/secret.ts";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";
import { changedAt, person, type Person } from "#support/encrypted-values.ts";

const FILE = "roster/a.yaml";
const PLACE = placeText(FILE, ["nodes", "n1", "vars", "token"]);

describe("a sealed value", () => {
  let alice: Person;
  let mallory: Person;
  let text: string;
  before(async () => {
    alice = await person("alice");
    mallory = await person("mallory");
    text = await sealFor("hunter2-hunter2", [alice.recipient], PLACE);
  });

  /** Opens with an identity file of this content. */
  const openWith = (content: string, sealed: string, { mode = 0o600, passphrase = "" } = {}): Promise<string> =>
    inProject({}, async (folder) => {
      const file = join(folder, "identity");
      writeFileSync(file, content);
      chmodSync(file, mode);
      const ask = (): Promise<string | undefined> => Promise.resolve(passphrase === "" ? undefined : passphrase);
      const opener = openerOf({ env: { KCORE_AGE_IDENTITY: file }, home: folder, ask });
      return Buffer.from(await opener.open(sealed)).toString();
    });
  const roster = (path: string, value: string): string =>
    path === "token"
      ? `nodes:\n  n1:\n    address: 192.0.2.1\n    vars: { token: "${value}" }\n`
      : `nodes:\n  n1: { address: 192.0.2.1, vars: { ${path}: "${value}" } }\n`;
  const placesOf = (file: string, yaml: string): string[] =>
    problemsIn(() => {
      const problems = new Problems();
      checkPlaces(parseSource(file, yaml), problems);
      problems.throwIfAny();
      throw new Error("in order");
    });

  it("is one line that names its place and the recipients' fingerprints, without the plain text", async () => {
    expect(text).to.match(/^age:[A-Za-z0-9+/]+=*$/);
    expect(isEncrypted(text)).to.equal(true);
    expect(headerOf(text)).to.deep.equal({ place: PLACE, fingerprints: [alice.recipient.fingerprint] });
    expect(Buffer.from(text.slice(4), "base64").toString("latin1")).not.to.contain("hunter2");
    expect(await sealFor("hunter2-hunter2", [alice.recipient], PLACE)).not.to.equal(text);
  });

  it("is decrypted by each recipient's identity, post-quantum or not, among others in the file", async () => {
    const bob = await person("bob", { postQuantum: true });
    const both = await sealFor("for two ä€\n", [alice.recipient, bob.recipient], PLACE);
    for (const { identity } of [alice, bob]) expect(await openWith(`${identity}\n`, both)).to.equal("for two ä€\n");
    expect(await openWith(`# two\n${mallory.identity}\n${alice.identity}\n`, text)).to.equal("hunter2-hunter2");
  });

  it("is decrypted by an identity, which becomes a secret that output masks", async () => {
    const { identity, recipient } = await person("carol");
    await openWith(identity, await sealFor("x", [recipient], PLACE));
    expect(knownSecrets().has(identity)).to.equal(true);
  });

  it("that is truncated is reported as not whole, without an identity", () => {
    const bytes = Buffer.from(text.slice(4), "base64");
    const header = bytes.indexOf("\n", bytes.indexOf("\n--- ") + 1) + 1;
    for (const length of [header + 31, header, header - 1, 20])
      expect(problemsIn(() => headerOf(`age:${bytes.toString("base64", 0, length)}`)).join()).to.match(
        /is not whole: something of it is missing \[SECRET_UNREADABLE\]/,
      );
  });

  it("is refused for an identity that is no recipient, with the identity file's path", async () => {
    const [problem = ""] = await problemsOfRejection(openWith(mallory.identity, text));
    expect(problem).to.match(/^the sealed value is not for the identities in \S+ \[SECRET_UNREADABLE\]/);
  });

  it("is refused with one message, whichever part of it was changed", async () => {
    const changes: readonly ((bytes: Buffer) => Buffer)[] = [
      // A letter of the place, of the fingerprint, of the MAC; the payload's last byte; two missing bytes.
      (bytes) => Buffer.from(bytes.toString("latin1").replace("vars/token", "vars/motdx"), "latin1"),
      (bytes) => Buffer.from(bytes.toString("latin1").replace(/\n--- ./, "\n--- A"), "latin1"),
      (bytes) => Buffer.concat([bytes.subarray(0, -1), Buffer.from([(bytes.at(-1) ?? 0) ^ 1])]),
      (bytes) => bytes.subarray(0, -2),
      (bytes) => Buffer.concat([bytes, Buffer.from("more")]),
    ];
    const messages = new Set<string>();
    for (const change of changes) {
      const changed = changedAt(text, change);
      if (changed === text) continue;
      for (const problem of await problemsOfRejection(openWith(alice.identity, changed))) messages.add(problem);
    }
    expect([...messages]).to.deep.equal([
      "the sealed value was changed, or is not whole [SECRET_UNREADABLE] | take it from git as it was, or give it anew: kcore secrets set FILE PATH",
    ]);
  });

  it("is refused where it was pasted into another place, without an identity", () => {
    expect(() => placesOf(FILE, roster("token", text))).to.throw("in order");
    const elsewhere: readonly (readonly [string, string])[] = [
      [FILE, roster("motd", text)],
      ["roster/b.yaml", roster("token", text)],
      [FILE, `nodes: { n2: { vars: { token: "${text}" } } }\n`],
      [FILE, `nodes: { n1: { vars: { token: ["${text}"] } } }\n`],
      [FILE, `nodes: { n1: { vars: { token: &t "${text}", motd: *t } } }\n`],
      [FILE, `nodes: { n1: { "vars/token": "${text}" } }\n`],
    ];
    for (const [file, yaml] of elsewhere) {
      const problems = placesOf(file, yaml);
      expect(problems, yaml).to.have.length(1);
      expect(problems[0]).to.match(
        /^roster\/[ab]\.yaml:\d+:\d+\+\d+ .*roster\/a\.yaml nodes\.n1\.vars\.token \[SECRET_MISPLACED\]/,
      );
    }
    const [problem = ""] = inProject({ [FILE]: roster("motd", text) }, (project) =>
      problemsIn(() => loadRoster(project)),
    );
    expect(problem).to.contain("SECRET_MISPLACED");
  });

  it("is refused at its place in the file where it is truncated", () => {
    for (const length of [40, 200, text.length - 41]) {
      const [problem = ""] = placesOf(FILE, roster("token", text.slice(0, length)));
      expect(problem).to.match(/^roster\/a\.yaml:4:20\+\d+ the sealed value is not whole.* \[SECRET_UNREADABLE\]/);
    }
  });

  it("is accepted in a step that moves behind another step", async () => {
    const sealed = await sealFor(
      "x",
      [alice.recipient],
      placeText("states/s.yaml", ["steps", "b", "file.managed", "content"]),
    );
    const step = `  - { id: b, file.managed: { path: /b, content: "${sealed}" } }\n`;
    for (const before of ["", "  - { id: a, package.installed: { name: a } }\n"])
      expect(() => placesOf("states/s.yaml", `steps:\n${before}${step}`)).to.throw("in order");
  });

  it("prints as *** before it is decrypted", () =>
    inProject({ [FILE]: roster("token", text) }, (project) => {
      const node = loadRoster(project).nodes.get("n1");
      expect(JSON.stringify(node)).to.contain('"token":"***"');
      expect(`${String(node?.vars["token"])}`).to.equal("***");
    }));

  describe("an identity file", () => {
    it("is KCORE_AGE_IDENTITY, or by default age-identity.txt in the configuration folder", () => {
      expect(identityFile({}, "/home/a")).to.equal("/home/a/.config/kcore/age-identity.txt");
      expect(identityFile({ XDG_CONFIG_HOME: "/c" }, "/home/a")).to.equal("/c/kcore/age-identity.txt");
      expect(identityFile({ KCORE_AGE_IDENTITY: "~/k.txt" }, "/home/a")).to.equal("/home/a/k.txt");
    });

    it("may be encrypted by a passphrase", async () => {
      const locked = await lock(`${alice.identity}\n`, "a passphrase", 8);
      expect(locked).not.to.contain("SECRET-KEY");
      expect(await openWith(locked, text, { passphrase: "a passphrase" })).to.equal("hunter2-hunter2");
      const [wrong = ""] = await problemsOfRejection(openWith(locked, text, { passphrase: "guess" }));
      expect(wrong).to.match(/^the passphrase does not open the identity file \S+ \[SECRET_IDENTITY\]$/);
      const [none = ""] = await problemsOfRejection(openWith(locked, text));
      expect(none).to.match(/^no passphrase was given/);
    });

    const invalid: readonly (readonly [string, string | undefined, number, RegExp])[] = [
      ["is readable by others", undefined, 0o640, /^others may read the identity file/],
      ["holds nothing", "# empty\n", 0o600, /^the identity file \S+ holds no identity/],
      [
        "holds an SSH key",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n",
        0o600,
        /holds an SSH key \[SECRET_IDENTITY\] \| SSH keys open nothing/,
      ],
      ["holds a recipient", "age1qqqq\n", 0o600, /holds something else than age identities/],
      ["holds a mistyped identity", `AGE-SECRET-KEY-1${"Q".repeat(58)}\n`, 0o600, /something else than age identities/],
    ];
    for (const [condition, content, mode, message] of invalid)
      it(`is refused when it ${condition}`, async () => {
        const [problem = ""] = await problemsOfRejection(openWith(content ?? alice.identity, text, { mode }));
        expect(problem).to.match(message);
      });

    it("that is missing is reported with the command that makes one", async () => {
      const opener = openerOf({ env: {}, home: "/nowhere", ask: () => Promise.resolve(undefined) });
      expect(await problemsOfRejection(opener.open(text))).to.deep.equal([
        "there is no identity to open sealed values with: cannot read /nowhere/.config/kcore/age-identity.txt: it does not exist [SECRET_IDENTITY] | kcore secrets keygen makes one; KCORE_AGE_IDENTITY=FILE names another",
      ]);
    });
  });

  describe("recipients.yaml", () => {
    const problemsOf = (yaml: string): Promise<string[]> =>
      inProject({ "recipients.yaml": yaml }, (project) => problemsOfRejection(readRecipients(project)));

    it("names people and their keys", async () => {
      const yaml = `# who\nalice: ${alice.recipient.key} # hers\nci: ${mallory.recipient.key}\n`;
      const names = await inProject({ "recipients.yaml": yaml }, (project) => readRecipients(project));
      expect(names.map(({ name, key }) => [name, key])).to.deep.equal([
        ["alice", alice.recipient.key],
        ["ci", mallory.recipient.key],
      ]);
    });

    it("that is missing or empty is refused before a value is sealed", async () => {
      const none = await inProject({}, (project) => readRecipients(project));
      expect(problemsIn(() => requireRecipients(none))).to.deep.equal([
        "sealed values could not be opened: recipients.yaml names no recipient, or is not there [SECRET_RECIPIENTS] | kcore secrets keygen, and then: kcore secrets recipients add NAME RECIPIENT",
      ]);
    });

    it("is refused at its line for each value that is no recipient of its own", async () => {
      const { key } = alice.recipient;
      expect(await problemsOf(`a: ${key}\nb: ${key}\n`)).to.deep.equal([
        `recipients.yaml:2:4+62 “b” has the same key as “a” [SECRET_RECIPIENTS]`,
      ]);
      const invalid: readonly (readonly [yaml: string, message: RegExp])[] = [
        [`a: ${key.slice(0, -1)}${key.endsWith("q") ? "p" : "q"}`, /“a” has no age recipient/],
        [`a: ${alice.identity}`, /“a” has its identity here, which opens everything/],
        ["a: ssh-ed25519 AAAA", /“a” has an SSH key/],
        ["a: [x]", /“a” has no age recipient/],
        [`- ${key}`, /recipients are a map/],
      ];
      for (const [yaml, message] of invalid) expect((await problemsOf(`${yaml}\n`)).join()).to.match(message);
    });
  });
});
