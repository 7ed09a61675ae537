import { expect } from "chai";
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { groupOf, readGroup, type Group } from "#engine/project/group-members.ts";
import { assertTrusted, projectOf, type Trust, trustOfProcess } from "#engine/project/project.ts";
import { problemsIn } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

const uid = process.geteuid?.() ?? 0;
const trust: Trust = trustOfProcess({});

describe("projectOf", () => {
  it("finds the nearest project upwards, or takes --project", () =>
    inProject({ "states/a/b.yaml": "" }, (project) => {
      expect(projectOf({ cwd: join(project, "states/a"), trust })).to.equal(project);
      expect(projectOf({ cwd: "/", project, trust })).to.equal(project);
      expect(projectOf({ cwd: join(project, "states"), project: "..", trust })).to.equal(project);
    }));

  it("refuses a folder without a project", () => {
    expect(problemsIn(() => projectOf({ cwd: "/", trust }))).to.deep.equal([
      "neither / nor a folder above it holds roster/ and orchestrate/ [PROJECT_NOT_FOUND] | go to your project, name it with --project DIR, or make one: kcore init DIR",
    ]);
    expect(problemsIn(() => projectOf({ cwd: "/", project: "/etc", trust }))[0]).to.include("/etc does not hold");
  });

  it("refuses a project that others can write to, sticky or not (S-20)", () =>
    inProject({}, (project) => {
      chmodSync(project, 0o777);
      expect(problemsIn(() => projectOf({ cwd: project, trust }))).to.deep.equal([
        `${project} can be written by others (mode 0777) [PROJECT_NOT_TRUSTED] | chmod go-w ${project}`,
      ]);
      chmodSync(project, 0o1777);
      mkdirSync(join(project, "mine"));
      expect(problemsIn(() => projectOf({ cwd: join(project, "mine"), trust }))[0]).to.include("[PROJECT_NOT_TRUSTED]");
      chmodSync(project, 0o755);
      chmodSync(join(project, "roster"), 0o757);
      expect(problemsIn(() => projectOf({ cwd: project, trust }))[0]).to.include("roster can be written by others");
    }));

  it("refuses a project of another user, except of the user who called sudo (S-20)", function () {
    if (uid !== 0) this.skip();
    inProject({}, (project) => {
      for (const path of [project, join(project, "roster"), join(project, "orchestrate")])
        chownSync(path, 12_345, 12_345);
      expect(problemsIn(() => projectOf({ cwd: project, trust }))[0]).to.include("belongs to the user 12345");
      expect(projectOf({ cwd: project, trust: trustOfProcess({ SUDO_UID: "12345", SUDO_GID: "12345" }) })).to.equal(
        project,
      );
    });
  });

  for (const name of ["states", "templates", "modules", "packs"])
    it(`refuses a project whose ${name}/ others can write to (S-20)`, () =>
      inProject({}, (project) => {
        mkdirSync(join(project, name));
        chmodSync(join(project, name), 0o777);
        expect(problemsIn(() => projectOf({ cwd: project, trust }))[0]).to.include("[PROJECT_NOT_TRUSTED]");
      }));

  it("refuses a file that others can write to when it is read (S-20)", () =>
    inProject({ "roster/a.yaml": "nodes: { n1: { address: h } }\n" }, (project) => {
      expect(loadRoster(project, { trust }).nodes.size).to.equal(1);
      chmodSync(join(project, "roster/a.yaml"), 0o666);
      expect(problemsIn(() => loadRoster(project, { trust }))).to.deep.equal([
        "roster/a.yaml can be written by others (mode 0666) [PROJECT_NOT_TRUSTED] | chmod go-w roster/a.yaml",
      ]);
    }));

  it("accepts a file that the user's own group can write to, but not another group", () =>
    inProject({}, (project) => {
      const path = join(project, "f");
      writeFileSync(path, "");
      chmodSync(path, 0o664);
      const stats = statSync(path);
      const groupOf = () => ({ name: "mine", members: [{ name: "me", uid }] });
      assertTrusted(path, stats, { uids: [uid], gids: [stats.gid], groupOf });
      expect(
        problemsIn(() => {
          assertTrusted(path, stats, { uids: [uid], gids: [stats.gid + 1], groupOf });
        })[0],
      ).to.include("can be written by others");
    }));

  it("refuses a file that the user's own group can write to if the group has other or unknown members (S-20)", () =>
    inProject({}, (project) => {
      const path = join(project, "f");
      writeFileSync(path, "");
      chmodSync(path, 0o664);
      const stats = statSync(path);
      const refusal = (group: Group | undefined) =>
        problemsIn(() => assertTrusted(path, stats, { uids: [uid], gids: [stats.gid], groupOf: () => group }));
      const me = { name: "me", uid };
      expect(
        refusal({ name: "users", members: [me, { name: "ann", uid: uid + 1 }, { name: "old", uid: undefined }] }),
      ).to.deep.equal([
        `${path} can be written by the group “users”, in which is not only you: ann, old (mode 0664) [PROJECT_NOT_TRUSTED] | chmod g-w ${path}, or give it to a group that only you are in`,
      ]);
      expect(refusal(undefined)[0]).to.include("does not know who is in it");
    }));

  it("reads a group's members, and the users whose primary group it is (S-20)", () => {
    const users = "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n";
    expect(readGroup(100, "users:x:100:bob,gone\n", users)).to.deep.equal({
      name: "users",
      members: [
        { name: "bob", uid: 1001 },
        { name: "gone", uid: undefined },
        { name: "ann", uid: 1000 },
      ],
    });
    expect(readGroup(7, "users:x:100:\n", users)).to.equal(undefined);
    expect(groupOf(0)?.members.map(({ uid: one }) => one)).to.include(0);
  });
});
