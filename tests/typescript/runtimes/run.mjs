import * as sdk from "@rowsmith/sdk";

import { walk } from "./walk.mjs";

console.log(JSON.stringify(await walk(sdk, {})));
