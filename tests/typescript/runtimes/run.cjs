const sdk = require("@rowsmith/sdk");

import("./walk.mjs").then(async ({ walk }) => console.log(JSON.stringify(await walk(sdk, {}))));
