import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { userManaged } from "#engine/modules/user-managed.ts";
import { makePrivateEtc, type PrivateEtc } from "#support/accounts.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const hash = "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.";

describe("user.managed", () => {
  it("wants what is given and nothing else", () => {
    expect(stepOf(userManaged, { name: "ops", uid: 1500, groups: ["b", "a"], lock: true }).want).to.deep.equal({
      state: "present",
      uid: "1500",
      groups: "a b",
      login: "locked",
    });
  });

  it("never shows the hash of a password (S-7)", () => {
    const step = stepOf(userManaged, { name: "ops", password: secret(hash) });
    expect(JSON.stringify(step) + String(step.apply) + String(step.probe)).not.to.contain("IxDD3je");
    expect(userManaged.args.safeParse({ name: "ops", password: hash }).success).to.equal(false);
  });

  it("refuses odd names, colons, and touching root", () => {
    for (const args of [
      { name: "-x" },
      { name: "a", comment: "a:b" },
      { name: "root", state: "absent" },
      { name: "root", uid: 5 },
    ])
      expect(userManaged.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: PrivateEtc;
      beforeEach(() => {
        etc = makePrivateEtc();
      });
      afterEach(() => etc.remove());
      const run = (args: object) => runStepOn(etc.shell(shell), stepOf(userManaged, { name: "demo", ...args }));

      it("makes a user with everything, and finds it in order", async () => {
        const args = {
          uid: 1500,
          group: "users",
          groups: ["adm"],
          shell: "/bin/sh",
          home: "/srv/demo",
          comment: "A demo",
          password: secret(hash),
        };
        const made = await run(args);
        expect(made.outcome, JSON.stringify(made)).to.equal("changed");
        expect(etc.entry("passwd", "demo")).to.deep.equal([
          "demo",
          "x",
          "1500",
          "100",
          "A demo",
          "/srv/demo",
          "/bin/sh",
        ]);
        expect([etc.entry("group", "adm")?.[3], etc.entry("shadow", "demo")?.[1]]).to.deep.equal(["demo", hash]);
        expect((await run(args)).outcome).to.equal("ok");
      });

      it("changes a user, locks and unlocks the password", async () => {
        await run({ system: true, password: secret(hash) });
        const changed = await run({ shell: "/bin/false", groups: ["adm"], lock: true });
        expect(changed.outcome, JSON.stringify(changed)).to.equal("changed");
        expect(etc.entry("shadow", "demo")?.[1]?.startsWith("!$6$")).to.equal(true);
        expect((await run({ lock: false, password: secret(hash) })).outcome).to.equal("changed");
        expect((await run({ lock: false, password: secret(hash) })).outcome).to.equal("ok");
      });

      it("takes only named groups away, and only when told to", async () => {
        await run({ groups: ["adm", "users"] });
        expect((await run({ groups: ["adm"] })).outcome).to.equal("ok");
        const exact = await run({ groups: [], append: false });
        expect([exact.have["groups"], exact.now["groups"]]).to.deep.equal(["adm users", "none"]);
      });

      it("joins a group of the user's name that is there already", async () => {
        const made = await runStepOn(etc.shell(shell), stepOf(userManaged, { name: "users" }));
        expect(made.outcome, made.stderr).to.equal("changed");
        expect(etc.entry("passwd", "users")?.[3]).to.equal("100");
      });

      it("removes a user", async () => {
        await run({});
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
      });

      it("uses adduser and addgroup where useradd is not there", async () => {
        const bin = {
          adduser:
            '[ "$*" = "-s /bin/sh -h /srv -S -H -D -G demo demo" ] || { echo "$*" >&2; exit 9; }; echo demo:x:9:9::/srv:/bin/sh >>/etc/passwd',
          addgroup:
            'case $* in "-S demo") echo demo:x:9: >>/etc/group ;; "demo adm") sed -i "s/^adm.*/&demo/" /etc/group ;; *) exit 9 ;; esac',
        };
        const step = stepOf(userManaged, {
          name: "demo",
          shell: "/bin/sh",
          home: "/srv",
          system: true,
          groups: ["adm"],
        });
        const made = await runStepOn(etc.shell(shell, { bare: true }), step, { bin });
        expect(made.outcome, JSON.stringify(made)).to.equal("changed");
      });
    });
});
