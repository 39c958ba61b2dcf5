package estimate

import _ "ephemera/env/stream/streamtest" // fixed cases in CI
