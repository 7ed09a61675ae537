import { stepKey } from "#engine/program/compile-step.ts";
console.log(stepKey("test/step"));
